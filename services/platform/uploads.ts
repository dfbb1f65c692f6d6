import type { LimitFunction } from 'p-limit'
import pLimit from 'p-limit'
import { HttpError } from '../http/errors.js'
import type { PlatformLimits } from './limits.js'

const RETRY_SECONDS = 10

/**
 * Bounds the memory for files: so many are received and read at the same time, and one of each user, so that no user
 * makes all others wait. Some more wait, without a byte of their bodies; further ones are refused. It is the memory of
 * this process: others have bounds of their own.
 */
export class Uploads {
  readonly #limits: PlatformLimits
  readonly #slots: LimitFunction
  readonly #ofUser = new Map<number, LimitFunction>()
  #waiting = 0

  constructor(limits: PlatformLimits) {
    this.#limits = limits
    this.#slots = pLimit(limits.concurrentUploads)
  }

  /**
   * Runs `job`, which receives a file, as soon as there is room for it. Throws HttpError: 429 when the user has too
   * many uploads, 503 when all users have.
   * @param user id
   */
  async run<T>(user: number, job: () => Promise<T>): Promise<T> {
    const { uploadsOfUser, uploadsWaiting } = this.#limits
    const own = this.#ofUser.get(user) ?? pLimit(1)
    const retry = ['Retry-After', RETRY_SECONDS]
    if (own.activeCount + own.pendingCount >= uploadsOfUser) {
      throw new HttpError(429, `You have ${uploadsOfUser} uploads already. Try again when one is done.`, retry)
    }
    if (this.#waiting >= uploadsWaiting) {
      throw new HttpError(503, 'Too many uploads wait for others. Try again later.', retry)
    }
    this.#ofUser.set(user, own)
    this.#waiting++
    const begin = (): Promise<T> => {
      this.#waiting--
      return job()
    }
    try {
      return await own(() => this.#slots(begin))
    } finally {
      if (own.activeCount + own.pendingCount === 0) this.#ofUser.delete(user)
    }
  }
}
