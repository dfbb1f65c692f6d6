import { randomBytes } from 'node:crypto'
import type { Logger, ObjectEvent, Records, State } from 'dealgate/plugin'

/** Shortest interval between log lines about dropped messages, ms. */
const REPORT_MS = 60_000

/** A message that waits for delivery. */
export interface Queued {
  readonly webhook: string
  readonly bucket: string
  readonly key: string
  /** Milliseconds since 1970. */
  readonly since: number
  /** Body as it is sent. */
  readonly body: string
}

/** Durable queue of messages. Ids sort by time. Failures of the state are S3Error ServiceUnavailable. */
export class Outbox {
  readonly #records: Records<Queued>
  readonly #log: Logger
  #dropped = 0
  /** Time of the last log line about dropped messages, ms since 1970. */
  #reported = 0

  constructor(
    state: Pick<State, 'records'>,
    log: Logger,
    /** Largest number of waiting messages, as far as this process knows. */
    readonly maxWaiting: number,
  ) {
    this.#records = state.records<Queued>('notifications')
    this.#log = log
  }

  /**
   * Adds a message. Resolves with its id once it is durable, or with undefined if the queue is full; that is logged.
   * @param requestId of the request that caused it
   */
  async add(sequencer: string, message: Queued, waiting: number, requestId?: string): Promise<string | undefined> {
    if (waiting >= this.maxWaiting) {
      this.#drop(message, requestId)
      return undefined
    }
    const id = `${sequencer}-${randomBytes(6).toString('hex')}`
    await this.#records.set(id, message)
    return id
  }

  get(id: string): Promise<Queued | undefined> {
    return this.#records.get(id)
  }

  remove(id: string): Promise<void> {
    return this.#records.delete(id)
  }

  /** Drops a message because the queue is full, and logs it. */
  async discard(id: string): Promise<void> {
    const message = await this.#records.get(id)
    if (!message) return
    this.#drop(message)
    await this.#records.delete(id)
  }

  /** Iterates over all messages in no particular order. */
  entries(): AsyncIterable<[id: string, message: Queued]> {
    return this.#records.entries()
  }

  /** Limits the log, because a line per message would fill the disk. */
  #drop({ webhook, bucket, key }: Queued, requestId?: string): void {
    this.#dropped++
    if (Date.now() - this.#reported < REPORT_MS) return
    this.#reported = Date.now()
    this.#log.error(
      { requestId, webhook, bucket, key, dropped: this.#dropped },
      'dropped notifications because the queue of undelivered ones is full',
    )
  }
}

/** Returns the part of an id that is the sequencer of the message's event. */
export function sequencerOf(id: string): string {
  return id.slice(0, id.indexOf('-'))
}

interface MessageFacts {
  readonly region: string
  readonly ruleId: string
  /** Canonical user id. */
  readonly owner: string
  readonly sequencer: string
}

/** The principal of events that S3 itself causes. */
const THE_SERVICE = 's3.amazonaws.com'

/**
 * Returns the body of an event message in the format of S3:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
 */
export function eventMessage(event: ObjectEvent, { region, ruleId, owner, sequencer }: MessageFacts): string {
  const { requestId, accessKeyId, remoteAddress } = event.origin
  const byItself = /^(Lifecycle|ObjectRestore:(Completed|Delete)$)/.test(event.name)
  const record = {
    eventVersion: versionOf(event),
    eventSource: 'aws:s3',
    awsRegion: region,
    eventTime: new Date(event.time).toISOString(),
    eventName: event.name,
    userIdentity: { principalId: byItself ? THE_SERVICE : accessKeyId || 'Anonymous' },
    requestParameters: { sourceIPAddress: byItself ? THE_SERVICE : remoteAddress },
    responseElements: { 'x-amz-request-id': requestId, 'x-amz-id-2': requestId },
    s3: {
      s3SchemaVersion: '1.0',
      configurationId: ruleId,
      bucket: {
        name: event.bucket,
        ownerIdentity: { principalId: owner },
        arn: `arn:aws:s3:::${event.bucket}`,
      },
      object: {
        key: formEncoded(event.key),
        ...(event.size !== undefined && { size: event.size }),
        ...(event.etag !== undefined && { eTag: event.etag }),
        ...(event.versionId !== undefined && { versionId: event.versionId }),
        sequencer,
      },
    },
    ...movement(event),
  }
  return JSON.stringify({ Records: [record] })
}

/** Returns the members that only transitions, completed restores and failed inventories have. */
function movement({ name, storageClass, until, failure }: ObjectEvent): object {
  if (failure) return { inventoryEventData: { errorCode: failure.code, errorMessage: failure.message } }
  if (name === 'LifecycleTransition')
    return { lifecycleEventData: { transitionEventData: { destinationStorageClass: storageClass } } }
  if (name !== 'ObjectRestore:Completed') return {}
  const restoreEventData = {
    ...(until !== undefined && { lifecycleRestorationExpiryTime: new Date(until).toISOString() }),
    lifecycleRestoreStorageClass: storageClass,
  }
  return { glacierEventData: { restoreEventData } }
}

/** Returns the message that S3 sends to a destination when it is configured. */
export function testMessage(facts: { bucket: string; requestId: string; time: number }): string {
  return JSON.stringify({
    Service: 'Amazon S3',
    Event: 's3:TestEvent',
    Time: new Date(facts.time).toISOString(),
    Bucket: facts.bucket,
    RequestId: facts.requestId,
    HostId: facts.requestId,
  })
}

/** Events about tagging, lifecycle and the expiry of restores have version 2.3, all others 2.1, by the page above. */
function versionOf({ name }: ObjectEvent): string {
  return /^(ObjectTagging:|Lifecycle|ObjectRestore:Delete)/.test(name) ? '2.3' : '2.1'
}

/** "The key name value is URL encoded": encodes as in forms, with `+` for a space, but keeps slashes. */
function formEncoded(key: string): string {
  return encodeURIComponent(key)
    .replaceAll('%2F', '/')
    .replaceAll('%20', '+')
    .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
