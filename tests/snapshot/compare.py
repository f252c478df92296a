"""What differs between two snapshots."""


def changes(before, after, *, digits):
    """Say in a line for each place what changed beyond so many digits, what is gone and what is new."""
    lines = [f"{call}: gone" for call in before if call not in after]
    for call, values in after.items():
        known = before.get(call)
        if known is None:
            lines.append(f"{call}: new")
            continue
        lines += [f"{call}: {place}: gone" for place in known if place not in values]
        lines += [f"{call}: {place}: new" for place in values if place not in known]
        for place, value in values.items():
            if place in known and not _same(known[place], value, digits):
                lines.append(f"{call}: {place}: {known[place]} became {value}")
    return lines


def kept(before, after, *, digits):
    """Return the later snapshot with the earlier numbers where both agree: rounding alone changes no file."""
    return {
        call: {
            place: before[call][place]
            if place in before.get(call, {}) and _same(before[call][place], value, digits)
            else value
            for place, value in values.items()
        }
        for call, values in after.items()
    }


def _same(before, after, digits):
    if isinstance(before, str) or isinstance(after, str):
        return before == after
    return abs(before - after) <= 10.0**-digits * max(1.0, abs(before))
