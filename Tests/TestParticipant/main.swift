print("participant")
