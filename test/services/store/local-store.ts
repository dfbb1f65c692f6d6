import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { S3Client, type S3Limits } from '../../../services/store/s3-client.js'
import { parseS3Url, type S3Credentials } from '../../../services/store/s3-location.js'
import type { BodyStoreWatch } from '../../../services/store/store-metrics.js'
import { listen } from '../../support/server/listen.js'

const LONG: S3Limits = { maxWaitMs: 60_000, idleMs: 60_000 }

export const first: S3Credentials = { accessKeyId: 'first', secretAccessKey: 'secret' }

/** A client of a store that answers so. */
export async function clientOf(
  t: Test,
  serve: RequestListener,
  limits = LONG,
  credentials = () => first,
  watch?: BodyStoreWatch,
): Promise<S3Client> {
  const place = parseS3Url(`s3://bucket?endpoint=${await listen(createServer(serve), t)}`)
  const client = new S3Client(place, credentials, limits, watch)
  t.teardown(() => client.close())
  return client
}

export function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status).end(`<Error><Code>${code}</Code><Message>no</Message></Error>`)
}
