"""What the user's classes and functions say of themselves.

In goes a class, a function or an annotation; out comes what it can be given, whether a value or another class fits it,
and the value as it wants it. Nothing here knows of files.
"""
