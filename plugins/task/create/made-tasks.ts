import type { Context, PluginHost, Records } from 'dealgate/plugin'

/** A task that was created through this server. Plain JSON. */
export interface MadeTask {
  readonly jobId: string
  readonly name: string
  /** Name of the CSV on the platform. */
  readonly file: string
  readonly uuid?: string
  readonly taskId?: number
  /** The bucket that its CSV came from. */
  readonly bucket?: string
  /** Duration of its deals, epochs. */
  readonly duration?: number
  /** Access key of the identity that created it. */
  readonly accessKeyId: string
  /** ms since 1970. */
  readonly made: number
}

/** A request for a task, recorded before it is sent. */
export interface TaskAttempt {
  /** Chosen by this server; platforms that know the field use it. */
  readonly uuid: string
  /** ms since 1970. */
  readonly sent: number
}

/** Ids of the jobs that created tasks from a bucket, the oldest first. */
interface BucketTasks {
  readonly jobIds: readonly string[]
}

declare module 'dealgate/plugin' {
  interface SettingTypes {
    task: BucketTasks
  }
}

/** Most tasks that are remembered of one bucket. */
const MAX_OF_BUCKET = 1000

export class MadeTasks {
  readonly #made: Records<MadeTask>
  /** Ids of jobs by the UUID of their task. */
  readonly #byUuid: Records<string>
  readonly #host: PluginHost

  constructor(host: PluginHost) {
    this.#host = host
    this.#made = host.state.records('task-made')
    this.#byUuid = host.state.records('task-by-uuid')
  }

  of(jobId: string): Promise<MadeTask | undefined> {
    return this.#made.get(jobId)
  }

  async withUuid(uuid: string): Promise<MadeTask | undefined> {
    const jobId = await this.#byUuid.get(uuid.toLowerCase())
    return jobId === undefined ? undefined : this.#made.get(jobId)
  }

  /** Durable when it resolves; may be repeated. The record of the job comes last: if it is there, so is all else. */
  async remember(task: MadeTask): Promise<void> {
    const { bucket, jobId, uuid } = task
    if (uuid !== undefined) await this.#byUuid.set(uuid.toLowerCase(), jobId)
    if (bucket !== undefined) await this.#addToBucket(bucket, jobId)
    await this.#made.set(jobId, task)
  }

  async #addToBucket(bucket: string, jobId: string): Promise<void> {
    await this.#host.state.locks.withName(`task-bucket/${bucket}`, async () => {
      const { jobIds } = (await this.#host.settings.latest(bucket, 'task')) ?? { jobIds: [] }
      if (jobIds.includes(jobId)) return
      await this.#host.settings.set(bucket, 'task', { jobIds: [...jobIds, jobId].slice(-MAX_OF_BUCKET) })
    })
  }

  /** Tasks created from the bucket as it is now, the newest first. */
  async ofBucket(bucket: string): Promise<readonly MadeTask[]> {
    const { jobIds } = (await this.#host.settings.confirmed(bucket, 'task')) ?? { jobIds: [] }
    const tasks = await Promise.all([...jobIds].reverse().map((jobId) => this.#made.get(jobId)))
    return tasks.filter((task) => task !== undefined)
  }

  /** All tasks, in no order. */
  async *all(): AsyncGenerator<MadeTask, void> {
    for await (const [, task] of this.#made.entries()) yield task
  }
}

/** A key pair with rights or an account of its own sees only what it has created. */
export function isSeenBy({ accessKeyId }: MadeTask, { caller }: Pick<Context, 'caller'>): boolean {
  if (!caller) return false
  const { rights, policies, account } = caller.identity
  return !(rights || policies || account) || accessKeyId === caller.identity.accessKeyId
}
