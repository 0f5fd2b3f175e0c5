"""The sbx stand-in's daemon and what it needs; ../README.md says what it covers and what is guessed."""
