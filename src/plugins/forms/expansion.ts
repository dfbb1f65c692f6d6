import type { z } from 'zod'
import type { Context } from '../../server/context.js'

/** A deal that an answer shows. */
export interface ExpansionSubject {
  readonly bucket: string
  /** Absent for a deal of a whole bucket. */
  readonly key?: string | undefined
  readonly dealCid: string
  /** UUID of the task by which it was made, if known. */
  readonly taskUuid?: string | undefined
  /** Id of the job that led to it, if known. */
  readonly jobId?: string | undefined
}

/** A meaning of a value of the parameter `expand`, which adds a member to each deal that an answer shows. */
export interface Expansion {
  /** The value: `task`. */
  readonly name: string
  /** Name of the member, in PascalCase. */
  readonly member: string
  /** One sentence about the member. */
  readonly summary: string
  /** Form of the member, for the descriptions of the calls; any object if absent. */
  readonly result?: z.ZodType
  /**
   * Returns the member for each of the deals, in their order; undefined for none. Gets the caller's context, and
   * returns only what the caller may see. Throws S3Error.
   */
  join(deals: readonly ExpansionSubject[], context: Context): Promise<readonly (object | undefined)[]>
}
