print("realm-sync")
