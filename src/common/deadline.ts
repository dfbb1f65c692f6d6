/** The deadline passed. */
export class Overdue extends Error {
  override readonly name = 'Overdue'
  constructor(ms: number) {
    super(`no result within ${ms} ms`)
  }
}

/**
 * Settles as `work` does, or rejects after `ms`, by default with Overdue. The outcome of `work` after that is ignored.
 */
export async function withinDeadline<T>(
  work: T | Promise<T>,
  ms: number,
  reason: () => Error = () => new Overdue(ms),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(reason()), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
