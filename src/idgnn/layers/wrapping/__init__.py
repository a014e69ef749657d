"""How a layer or model that knows nothing of colors is made to send colored messages: found out, done and checked."""
