def solution(numbers):
    return sorted(numbers)
