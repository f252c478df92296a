"""Packages of strangers, as an installer leaves them: a module, and a folder that names its entry points."""

from itembank.methods import entry_points_of


def install(monkeypatch, folder, name, source, entry_points):
    """Install a package of one module for one test; `entry_points` map a group to its lines."""
    (folder / f"{name}.py").write_text(source)
    name_entry_points(monkeypatch, folder, name, entry_points)


def name_entry_points(monkeypatch, folder, name, entry_points):
    """Let a folder say for one test that a package brings these."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = [f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in entry_points.items()]
    (about / "entry_points.txt").write_text("\n".join(groups))
    monkeypatch.syspath_prepend(str(folder))
    entry_points_of.cache_clear()


def forget(monkeypatch, *tables):
    """Let a test change tables of methods, and have them as they were after it."""
    for table in tables:
        monkeypatch.setattr(table, "_methods", dict(table._methods))
