print("fuzzer")
