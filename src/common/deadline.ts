/** Nothing came in time. */
export class Overdue extends Error {
  override readonly name = 'Overdue'
  constructor(ms: number) {
    super(`nothing came of it within ${ms} ms`)
  }
}

/** Settles as the work does, or rejects after `ms`, by default with Overdue; what becomes of the work then is of no account. */
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
