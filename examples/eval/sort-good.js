const solution = (numbers) => [...numbers].sort((x, y) => x - y);
