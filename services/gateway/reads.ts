import { join } from 'node:path'
import { type FamilySnapshot, Metrics } from '../../common/metrics.js'
import type { Reads } from '../../common/port-messages.js'
import { OwnClient } from '../http/own-client.js'
import { serving } from '../http/server.js'
import type { ServicesLog } from '../log.js'
import type { BodyError } from '../store/bodies.js'
import type { Connection } from '../store/database.js'
import { FolderBodies } from '../store/folder-bodies.js'
import { followSqlite } from '../store/sqlite-reader.js'
import { StoreMetrics } from '../store/store-metrics.js'
import { type KeptSums, VerifiedBodies } from '../store/verified-bodies.js'
import { Tokens } from './access.js'
import { Accounts } from './accounts/accounts.js'
import { type Brand, namesOf, neutralBrand } from './brand.js'
import type { ReadContext, ReadTables } from './context.js'
import { plainErrors } from './errors.js'
import { features } from './features.js'
import { type Front, handlerOf, MAX_HEADER_BYTES, plainAnswers } from './handler.js'
import { gatewayLimits } from './limits.js'
import { download } from './rest/download.js'
import { parseBody, readRequest } from './rpc/protocol.js'
import { readMethods } from './rpc/read-methods.js'
import { webrpc } from './rpc/webrpc.js'
import { BodySums } from './store/body-sums.js'
import { Buckets, Policies } from './store/buckets.js'
import { anyKeys } from './store/key-rules.js'
import { ObjectLocks } from './store/object-locks.js'
import { Objects } from './store/objects.js'
import { INDEX_FILE } from './store/schema.js'
import { Versions } from './store/versions.js'

/** The gateway of a folder, as far as it reads. */
export interface OpenedReads extends Reads {
  metrics(): Promise<readonly FamilySnapshot[]>
  /** Cuts the answers that are under way. */
  close(): void
}

interface ReadsOptions {
  readonly brand?: Brand
  readonly log: ServicesLog
}

const methods: ReadonlyMap<string, (typeof readMethods)[number]> = new Map(
  readMethods.map((method) => [method.name, method]),
)

const front: Front<ReadContext> = {
  endpoints: [
    { method: 'GET', path: '/download/*', handle: download },
    { method: 'HEAD', path: '/download/*', handle: download },
    { method: 'POST', path: '/webrpc/*', handle: webrpc(methods, readRequest) },
  ],
  ...plainAnswers,
  shared: async (exchange) => plainAnswers.unrouted(exchange, []),
}

/**
 * Answers downloads, HEAD and listings of the gateway that runs over this folder, in the thread of its client: by the
 * same code, over a connection of its own to the same index. That gateway has its index in SQLite, all bodies in the
 * folder, and nothing in front that changes its behaviour; another thread or process may run it. Throws when there is
 * no index.
 * @param folder of the services
 */
export function openReads(folder: string, { brand = neutralBrand, log }: ReadsOptions): OpenedReads {
  const own = join(folder, 'gateway')
  const { connection, close } = followSqlite(join(own, INDEX_FILE))
  const metrics = new Metrics()
  const context = contextOf(own, readTables(connection), { brand, log }, new StoreMetrics(metrics))
  const serve = serving(handlerOf(context, front))
  const client = new OwnClient(MAX_HEADER_BYTES, (request, response) => void serve(request, response, false))
  const downloads = `/${context.names.path}/download/`
  const calls = `/${context.names.path}/webrpc`
  return {
    takes(method, path, body) {
      if (method === 'GET' || method === 'HEAD') return path.startsWith(downloads)
      return method === 'POST' && path === calls && body !== undefined && isRead(body)
    },
    begin: (request, send) => client.begin(request, send),
    metrics: () => metrics.snapshot(),
    close() {
      client.close()
      close()
    },
  }
}

/** Longest call that is looked at, bytes: those that read name a bucket, a prefix and a key. */
const MAX_CALL_BYTES = 16 * 1024

/** True for a call of a method that reads. What cannot be parsed is left to the gateway itself. */
function isRead(body: Buffer): boolean {
  if (body.length > MAX_CALL_BYTES) return false
  try {
    return methods.has(readRequest(parseBody(body)).method)
  } catch {
    return false
  }
}

function contextOf(
  folder: string,
  read: ReadTables,
  { brand, log }: Required<ReadsOptions>,
  metrics: StoreMetrics,
): ReadContext {
  const damaged = (error: BodyError) => metrics.damaged(error)
  const kept: KeptSums = { row: (generation, n) => read.bodySums.row(generation, n), adopt: async () => {} }
  return {
    names: namesOf(brand),
    errors: plainErrors,
    features: new Set(features),
    limits: gatewayLimits,
    log,
    damaged,
    tokens: new Tokens({ read }, NO_SECONDS),
    rules: anyKeys,
    db: { read },
    bodies: new VerifiedBodies(new FolderBodies(join(folder, 'objects'), log), kept, log, damaged),
  }
}

/** It verifies tokens, and gives none out. */
const NO_SECONDS = 0

function readTables(connection: Connection): ReadTables {
  return {
    accounts: new Accounts(connection),
    buckets: new Buckets(connection),
    policies: new Policies(connection),
    objects: new Objects(connection),
    versions: new Versions(connection),
    locks: new ObjectLocks(connection),
    bodySums: new BodySums(connection),
  }
}
