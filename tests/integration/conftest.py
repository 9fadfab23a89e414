from tests.processes import bus, processes, setup  # noqa: F401 - fixtures for these tests
