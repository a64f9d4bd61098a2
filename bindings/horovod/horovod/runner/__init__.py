"""Starting jobs."""


def run(*a, **k):
    raise NotImplementedError
