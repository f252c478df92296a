"""Reports: pages of one HTML file each, which open anywhere and need nothing else.

Every function takes a result and returns a `Page`: ``page.save("report.html")`` writes it, and a notebook shows it.
"""
