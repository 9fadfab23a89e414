from tests.integration.secured import kafka  # noqa: F401 - a fixture for these tests
from tests.processes import bus, processes, setup  # noqa: F401 - fixtures for these tests
