"""The work that is timed, of credo and of its peers: each case runs alone in a fresh process.

These modules run as the package `cases`, in an interpreter that has the library of the case: most of them must not
import credo.
"""
