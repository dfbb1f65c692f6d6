import type { ObjectEvent } from '../../../plugins/forms/hooks.js'

export interface MessageFacts {
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
        sequencer,
      },
    },
    ...movement(event),
  }
  return JSON.stringify({ Records: [record] })
}

/** Returns the members that only transitions and completed restores have. */
function movement({ name, storageClass, until }: ObjectEvent): object {
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
