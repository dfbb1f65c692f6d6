import { S3Error } from 'dealgate/plugin'

/** Most of one archive, and of all archives at the same time, in characters as `Paths` counts them. */
const MOST = 32 * 1024 * 1024
const MOST_OF_ALL = 2 * MOST

/** What an entry or a folder takes beside its path, as characters. */
const BESIDE = 64

/**
 * Counts the characters of the paths of an archive, which are in memory until it ends: of each object, and of each
 * folder on the way to it. A key of 1,024 bytes may have 500 folders, and so 250,000 characters.
 */
export class Paths {
  #length = 0
  #last = ''

  get length(): number {
    return this.#length
  }

  /** Throws InvalidRequest when there are too many. */
  add(key: string): void {
    this.#length += key.length + BESIDE
    // The folders of the key before are there already.
    const known = commonLength(this.#last, key)
    for (let at = key.indexOf('/', known); at !== -1; at = key.indexOf('/', at + 1)) this.#length += at + BESIDE
    this.#last = key
    if (this.#length > MOST)
      throw new S3Error('InvalidRequest', {
        message: `The paths of an archive, with those of their folders, have at most ${MOST} characters together: select fewer objects, such as one folder.`,
      })
  }
}

function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** The paths that one archive has in memory. */
export interface Held {
  /** Throws SlowDown if the paths, which have become more, have no room. */
  grow(length: number): void
  /** May be called again. */
  release(): void
}

/** The room for the paths of all archives that are under way in this process. */
export class Room {
  #held = 0

  /** Throws S3Error SlowDown. */
  hold(length: number): Held {
    let own = 0
    let isOver = false
    const grow = (wanted: number) => {
      const more = wanted - own
      if (isOver || more <= 0) return
      if (this.#held + more > MOST_OF_ALL)
        throw new S3Error('SlowDown', {
          message: 'The archives that are being sent have too many paths together: ask again when some have ended.',
          headers: { 'retry-after': '30' },
        })
      this.#held += more
      own += more
    }
    grow(length)
    const release = () => {
      isOver = true
      this.#held -= own
      own = 0
    }
    return { grow, release }
  }
}
