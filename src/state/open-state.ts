import { join } from 'node:path'
import { isReported } from '../../common/errors/s3-error.js'
import { bringUpToDate, requireUsableVersion } from '../../common/files/data-version.js'
import { openingFailure } from '../../common/opening-failure.js'
import { Quota } from '../../common/quota.js'
import { DAY_MS } from '../../common/time.js'
import type { State } from '../api/state.js'
import type { Backend, StateOptions } from './backend.js'
import { cannotUse } from './errors.js'
import { FolderRecord, makeFolder } from './folder-record.js'
import { GatewayWitness } from './guard.js'
import { kindOf, openBackend } from './open-backend.js'
import { KeyvObjectRecords } from './records/object-records.js'
import type { Table } from './records/table.js'
import { joinFolder, lockAsWorker, lockFolder } from './sqlite-lock.js'
import { StoreCheck } from './store-check.js'
import { type OpenedStaging, openStaging } from './uploads/open-staging.js'
import { Spools } from './uploads/spool.js'
import { defaultStagedBounds, StagedBytes } from './uploads/staged-part.js'
import { KeyvUploads } from './uploads/uploads.js'

/**
 * Interval at which a shared store is checked for loss, ms. Actions that spend money or open a bucket check by
 * themselves.
 */
const LOOK_MS = 10_000

/** Time for which a completed upload is remembered, ms: clients repeat CompleteMultipartUpload within minutes. */
const COMPLETED_MS = DAY_MS

/** Opens the state of the proxy. Throws StateError and leaves nothing open then. */
export async function openState(options: StateOptions): Promise<State> {
  const kind = kindOf(options.url)
  const folder = makeFolder(join(options.data, 'state'))
  const { worker } = options
  const joined =
    worker === undefined && kind !== 'sqlite' && options.staging !== undefined
      ? joinFolder(folder, options.data)
      : undefined
  const lock = joined ?? (worker ? lockAsWorker(folder, worker.number) : lockFolder(folder))
  try {
    if (worker) requireUsableVersion(options.data)
    else if (joined === undefined) bringUpToDate(options.data)
    const folderRecord = await FolderRecord.open(options.data)
    const ownSpool = worker ? String(worker.number) : joined && `server-${joined.number}`
    const spools = new Spools(makeFolder(join(options.data, 'spool', ...(ownSpool === undefined ? [] : [ownSpool]))))
    const staged = new StagedBytes(new Quota(options.staged ?? defaultStagedBounds))
    await spools.clear()
    const backend = await openBackend(kind, options, folder)
    const amongServers = kind !== 'sqlite'
    const shared = amongServers || worker !== undefined
    const opened = await openStaging(options.staging, {
      backend,
      data: options.data,
      amongWorkers: worker !== undefined,
      home: amongServers ? folderRecord.id : undefined,
      bytes: staged,
      spool: () => spools.create(),
    }).catch(async (error) => {
      await backend.close()
      throw error
    })
    const gateway = options.gateway && new GatewayWitness(options.gateway, options.log, amongServers)
    const life = { isClosed: false }
    const waitsForGateway = gateway?.judgesNew === true && folderRecord.kept.epoch === undefined
    const check = new StoreCheck({ places: backend.identities, folder: folderRecord, gateway, log: options.log })
    // On a full disk a new store id cannot be written. Actions that depend on it look again and fail until it can.
    const looked = check.look().catch((err) => {
      if (!isReported(err, options.log) && !life.isClosed) options.log.error({ err }, 'could not check the state store')
    })
    // The gateway may start later than this server.
    if (!waitsForGateway) await looked
    for (const advice of await adviceOf(backend)) options.log.warn(advice)
    return stateOf(
      {
        backend,
        check,
        life,
        shared,
        process: ownSpool ?? 'server',
        spools,
        staged,
        opened,
      },
      options,
      lock.release,
    )
  } catch (error) {
    lock.release()
    throw openingFailure(options.data, error) === undefined ? error : cannotUse(options.data, error)
  }
}

/** Never rejects: a server may not reveal its settings. */
async function adviceOf(backend: Backend): Promise<readonly string[]> {
  return backend.advice().catch(() => [])
}

interface StateDeps {
  readonly backend: Backend
  readonly check: StoreCheck
  readonly life: { isClosed: boolean }
  readonly shared: boolean
  readonly process: string
  readonly spools: Spools
  readonly staged: StagedBytes
  readonly opened: OpenedStaging
}

function stateOf(deps: StateDeps, options: StateOptions, release: () => void): State {
  const { backend, check, life, shared, process, spools, staged, opened } = deps
  const { locks } = backend
  const tableOf = <T>(...args: Parameters<Backend['table']>) => backend.table<T>(...args).timed(options.onCall)
  // A store in a local file does not disappear while it is open.
  const looking = shared ? setInterval(() => check.look().catch(() => {}), LOOK_MS).unref() : undefined
  let closed: Promise<void> | undefined
  /**
   * One per kind: store clients add a listener to their connection for each table, and leases request theirs
   * repeatedly.
   */
  const tables = new Map<string, Table<unknown>>()
  return {
    shared,
    process,
    objects: new KeyvObjectRecords(tableOf('object')),
    uploads: new KeyvUploads({
      uploads: tableOf('upload'),
      parts: tableOf('part'),
      completed: tableOf('completed', { ttl: COMPLETED_MS }),
      begun: tableOf(ownNamespace('s3-begun-uploads')),
      ...opened,
      stagedBytes: staged,
      locks,
      log: options.log,
      now: options.now ?? Date.now,
    }),
    locks,
    signals: backend.signals,
    records: <T>(name: string) => {
      const known = tables.get(name) ?? tableOf(ownNamespace(name))
      tables.set(name, known)
      // Each kind has one user, which binds its type.
      return known as Table<T>
    },
    stagedBytes: () => staged.held,
    spool: () => spools.create(),
    requireIntact: () => check.require(),
    raiseMark: () => check.raise(),
    acceptedLoss: () => check.acceptedLoss(),
    problem: () => check.problem,
    close() {
      life.isClosed = true
      clearInterval(looking)
      closed ??= (async () => {
        try {
          await Promise.all([spools.close(), opened.staging.close()])
          await backend.close()
        } finally {
          release()
        }
      })()
      return closed
    },
  }
}

function ownNamespace(name: string): `x-${string}` {
  if (!/^[a-z0-9-]{1,40}$/.test(name))
    throw new Error(`"${name}" cannot name records: use lower-case letters, digits and "-"`)
  return `x-${name}`
}
