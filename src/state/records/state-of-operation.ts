import { S3Error } from '../../../common/errors/s3-error.js'
import type { Records, State } from '../../api/state.js'
import { noSignals } from '../signals.js'

/** The declarations of an operation that decide what it may change. Undefined for work without one, such as a job. */
export type Declared = { readonly access: string; readonly keeps?: 'uploads' } | undefined

/**
 * Returns the state as an operation sees it. Only an operation with `access: 'owner'` can change it, because no call to
 * the gateway protects data that only this server stores. An operation with `keeps: 'uploads'` can also change
 * multipart uploads. For all others every change throws AccessDenied, whatever the operation checks itself. A plugin
 * changes records of its own, which belong to no bucket, through the `state` of its PluginHost.
 */
type StateOfOperation = (declared: Declared) => State

export function stateOfOperation(state: State): StateOfOperation {
  const reading = readOnly(state)
  const keeping: State = { ...reading, uploads: state.uploads }
  return (declared) => (declared?.access === 'owner' ? state : declared?.keeps === 'uploads' ? keeping : reading)
}

/** Lists every method by name, so that a new method of State does not compile before its access is decided. */
function readOnly(state: State): State {
  const { objects, uploads, locks } = state
  return {
    shared: state.shared,
    process: state.process,
    records: <T>(name: string) => readOnlyRecords<T>(state.records(name)),
    objects: {
      get: (bucket, key) => objects.get(bucket, key),
      getMany: (bucket, keys) => objects.getMany(bucket, keys),
      ofRevision: (bucket, key, revision) => objects.ofRevision(bucket, key, revision),
      manyOfRevisions: (bucket, versions) => objects.manyOfRevisions(bucket, versions),
      set: refuse,
      delete: refuse,
      setNewest: refuse,
      setVersion: refuse,
      deleteVersion: refuse,
    },
    uploads: {
      get: (uploadId) => uploads.get(uploadId),
      requireHere: (upload) => uploads.requireHere(upload),
      list: (bucket) => uploads.list(bucket),
      listParts: (...args) => uploads.listParts(...args),
      readPart: (uploadId, part, sink) => uploads.readPart(uploadId, part, sink),
      completed: (uploadId) => uploads.completed(uploadId),
      create: refuse,
      openPart: refuse,
      putPart: refuse,
      attempt: refuse,
      finish: refuse,
      abort: refuse,
      sweep: refuse,
    },
    locks,
    signals: noSignals,
    stagedBytes: () => state.stagedBytes(),
    spool: () => state.spool(),
    requireIntact: () => state.requireIntact(),
    raiseMark: () => state.raiseMark(),
    acceptedLoss: () => state.acceptedLoss(),
    problem: () => state.problem(),
    close: refuse,
  }
}

function readOnlyRecords<T>(records: Records<T>): Records<T> {
  return {
    get: (key) => records.get(key),
    getMany: (keys) => records.getMany(keys),
    entries: () => records.entries(),
    set: refuse,
    change: refuse,
    delete: refuse,
  }
}

async function refuse(): Promise<never> {
  throw new S3Error('AccessDenied', {
    message: 'Only an operation for the owner of the bucket may change what this server keeps.',
  })
}
