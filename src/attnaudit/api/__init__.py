"""The public API: what a person does with this package, a function each. The command line calls these and nothing else.

`attnaudit.NAME` is the same function, imported when it is first used.
"""
