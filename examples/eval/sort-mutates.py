def solution(numbers):
    numbers.sort()
    return numbers
