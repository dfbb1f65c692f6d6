import { randomUUID } from 'node:crypto'
import type { S3 } from '@aws-sdk/client-s3'
import type { InProcess } from '../server/in-process.js'
import { ask } from '../server/many-deaths.js'
import type { Endpoint } from '../sign/send.js'
import { until } from '../waiting.js'

export function endpointOf(
  { endpoint }: Pick<InProcess, 'endpoint'>,
  accessKey = 'test-key',
  secretKey = 'test-secret',
): Endpoint {
  return { endpoint, accessKey, secretKey, region: 'us-east-1' }
}

/** Sends a call of batch jobs. */
export function batch(
  at: Endpoint,
  method: string,
  path = '',
  json?: object,
  headers?: Readonly<Record<string, string>>,
) {
  return ask(at, method, `/-/batch/v1${path}`, { ...(json && { json }), ...(headers && { headers }) })
}

const ENDED = ['Complete', 'Failed', 'Cancelled']

/**
 * Creates a job and waits until it has ended, or is in one of these states. Each has a token of its own: an equal order
 * that is signed within the same second would be a repetition.
 */
export async function done(at: Endpoint, order: object, states: readonly string[] = ENDED) {
  const { status, json } = await batch(at, 'POST', '', order, { 'x-amz-client-token': randomUUID() })
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(json)}`)
  return reaches(at, json.JobId, states)
}

export function reaches(at: Endpoint, id: string, states: readonly string[] = ENDED) {
  return until(`the job is ${states.join(' or ')}`, async () => {
    const { json } = await batch(at, 'GET', `/${id}`)
    return states.includes(json.Status) && json
  })
}

/** The lines of all files of a report, and its manifest. */
export async function reportOf(s3: S3, { Bucket, Key }: { readonly Bucket: string; readonly Key: string }) {
  const manifest = JSON.parse(await text(s3, Bucket, Key))
  const lines: string[] = []
  for (const file of manifest.Results) lines.push(...(await text(s3, Bucket, file.Key)).trimEnd().split('\n'))
  return { manifest, lines }
}

async function text(s3: S3, Bucket: string, Key: string): Promise<string> {
  const { Body } = await s3.getObject({ Bucket, Key })
  return (await Body?.transformToString()) ?? ''
}

export async function keysOf(s3: S3, Bucket: string): Promise<string[]> {
  const { Contents = [] } = await s3.listObjectsV2({ Bucket })
  return Contents.map(({ Key = '' }) => Key)
}
