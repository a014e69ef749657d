"""How a layer or model that knows nothing of colours is made to send coloured messages: found out, done and checked."""
