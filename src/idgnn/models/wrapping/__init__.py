"""How a layer or model that was written without colors is made to send colored messages: detected, done and checked."""
