const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?$/i

/** Returns undefined for text that is not a decimal number. */
export function numberOf(text: string): number | undefined {
  const trimmed = text.trim()
  return NUMBER.test(trimmed) ? Number(trimmed) : undefined
}

/** Reads `true`, `false`, `1` or `0` in any case; returns undefined for other text. */
export function booleanOf(text: string): boolean | undefined {
  switch (text.trim().toLowerCase()) {
    case 'true':
    case '1':
      return true
    case 'false':
    case '0':
      return false
    default:
      return undefined
  }
}
