from tests.brokers_plugin import broker, kafka_bootstrap  # noqa: F401 - fixtures for all tests
