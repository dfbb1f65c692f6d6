import { closeSync, fsyncSync, openSync, statfsSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemFailure } from './errors/system-errors.js'
import { restrictMode } from './files/private-file.js'

/** Room for the log of some removals, bytes. A disk with less counts as full. */
export const RESERVE_BYTES = 2 * 1024 * 1024
/** Pause between attempts to take the reserve, ms. */
const RETRY_MS = 1_000

/**
 * Reserves disk space for removals: removing an object writes to a database, which is impossible on a full disk. The
 * reserve is a file beside the database. It is deleted when space is needed, and written again once there is enough
 * space.
 */
export class DiskReserve {
  readonly #file: string
  #held: boolean
  #retryAt = 0
  #retrying: NodeJS.Timeout | undefined

  /** @param database path of the database that needs the reserve */
  constructor(database: string) {
    this.#file = `${database}.reserve`
    restrictMode(this.#file)
    this.#held = statSync(this.#file, { throwIfNoEntry: false })?.size === RESERVE_BYTES
  }

  /**
   * True when the reserve exists or could be created now. Without it, only removals should be written.
   * @param last true to try again although the last attempt was just now
   */
  hold(last = false): boolean {
    if (this.#held) return true
    const now = performance.now()
    if (now < this.#retryAt && !last) return false
    this.#held = this.#take()
    if (this.#held) this.stop()
    else {
      this.#retryAt = now + RETRY_MS
      this.#retry()
    }
    return this.#held
  }

  /** True when the disk has hardly more free space than the reserve. */
  isTight(): boolean {
    return freeBytes(this.#file) < RESERVE_BYTES
  }

  /** Frees the reserve. False when there was none. */
  release(): boolean {
    this.#held = false
    this.#retry()
    return this.#remove()
  }

  /** Stops the attempts to create the reserve. */
  stop(): void {
    clearInterval(this.#retrying)
    this.#retrying = undefined
  }

  /** Space that becomes free must be reserved before something else takes it. */
  #retry(): void {
    this.#retrying ??= setInterval(() => this.hold(), RETRY_MS).unref()
  }

  #remove(): boolean {
    try {
      unlinkSync(this.#file)
      return true
    } catch {
      return false
    }
  }

  /** Written in full: a file with holes reserves nothing. */
  #take(): boolean {
    try {
      if (this.isTight()) return false
      const fd = openSync(this.#file, 'w', 0o600)
      try {
        const bytes = Buffer.alloc(RESERVE_BYTES, 0xd6)
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
        fsyncSync(fd)
        return true
      } finally {
        closeSync(fd)
      }
    } catch {
      this.#remove()
      return false
    }
  }
}

function freeBytes(file: string): number {
  const { bavail, bsize } = statfsSync(dirname(file))
  return bavail * bsize
}

/** Runs work that needs a little disk space. On a full disk, frees the reserve and runs it once more. */
export function withReserve<T>(reserve: DiskReserve, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!isDiskFull(error) || !reserve.release()) throw error
    return work()
  }
}

/** True when a write failed for lack of disk space. */
export function isDiskFull(error: unknown): boolean {
  return systemFailure(error)?.kind === 'full'
}
