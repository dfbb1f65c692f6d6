import { type EndedRequest, z } from 'dealgate/plugin'
import { type Entry, entryOf, entrySchema, filterSchema, isKept, meets } from './entry.js'
import { Ring } from './ring.js'
import { sees, viewerSchema } from './viewer.js'

/** A question to each process. */
export const questionSchema = z.object({
  viewer: viewerSchema,
  filter: filterSchema,
  /** Number of the last request that the reader has, by the name of its process. Absent: the newest ones. */
  after: z.record(z.string(), z.number()).optional(),
  max: z.int().min(1).max(1000),
})

export type Question = z.infer<typeof questionSchema>

/** What one process has, the oldest first. */
export const foundSchema = z.object({
  requests: z.array(z.tuple([z.number(), entrySchema])),
  /** Up to which number the process has looked. */
  upTo: z.number(),
  /** It has more that are newer than those in the answer. */
  more: z.boolean(),
  /** Some that the reader has not got were no longer kept. */
  lost: z.boolean(),
})

export type Found = z.infer<typeof foundSchema>

/** Characters of requests in one answer: a message to another process is short. */
const MAX_ANSWER = 256 * 1024

/** The last requests of this process. A number is a time, µs since 1970, of which none comes twice. */
export class LastRequests {
  readonly #ring: Ring
  readonly #now: () => number
  #last = 0

  constructor(now: () => number, ring = new Ring()) {
    this.#now = now
    this.#ring = ring
  }

  add(ended: EndedRequest): void {
    if (isKept(ended)) this.#ring.add(this.#number(), JSON.stringify(entryOf(ended)))
  }

  /** @param process name of this one */
  find({ viewer, filter, after, max }: Question, process: string): Found {
    // A number of its own, so that the answer does not tell when others have asked for something.
    const now = this.#number()
    const from = after?.[process] ?? 0
    const lost = from > 0 && this.#ring.evicted > from
    const maySee = sees(viewer)
    const requests: Found['requests'] = []
    let size = 0
    for (const [number, text] of after ? this.#ring.newerThan(from) : this.#ring.newestFirst()) {
      const entry: Entry = JSON.parse(text)
      if (!meets(filter, entry) || !maySee(entry, number / 1000)) continue
      size += text.length
      if (requests.length === max || size > MAX_ANSWER) {
        if (!after) break
        return { requests, upTo: requests.at(-1)?.[0] ?? from, more: true, lost }
      }
      requests.push([number, entry])
    }
    return { requests: after ? requests : requests.reverse(), upTo: now, more: false, lost }
  }

  #number(): number {
    this.#last = Math.max(this.#last + 1, this.#now() * 1000)
    return this.#last
  }
}
