// All uploads of this tab. Those that are done are counted and forgotten, so that thousands of files need little memory.
import { computed, effect, signal } from '../lib/html.js'
import { busy, session } from '../lib/session.js'
import { Upload } from './upload.js'

const AT_ONCE = 3

/** Uploads that are not done, in the order in which they were added. */
export const uploads = signal([])

const NONE = { files: 0, bytes: 0, doneFiles: 0, doneBytes: 0, skipped: 0 }
/** Of all since the last time that there was none: { files, bytes, doneFiles, doneBytes, skipped }. */
export const totals = signal(NONE)

/** Bytes that were sent, those of files that are done included. */
export const sentBytes = computed(() =>
  uploads.value.reduce((sum, { sent }) => sum + sent.value, totals.value.doneBytes),
)

let running = 0
const listeners = new Set()

/** Calls back whenever a file of the bucket is stored. Returns what ends that. */
export function onStored(bucket, call) {
  const listener = (upload) => upload.bucket === bucket && call(upload)
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** @param files [{ file, path }]: `path` with slashes, put after the prefix */
export function addFiles(files, { bucket, prefix, replace }) {
  addUploads(files.map(({ file, path }) => new Upload({ file, bucket, key: prefix + path, replace })))
}

export function addUploads(added) {
  if (uploads.value.length === 0) totals.value = NONE
  const bytes = added.reduce((sum, { file }) => sum + file.size, 0)
  totals.value = { ...totals.value, files: totals.value.files + added.length, bytes: totals.value.bytes + bytes }
  uploads.value = [...uploads.value, ...added]
  start()
}

/** Runs those that wait, a few at the same time. */
function start() {
  for (const upload of uploads.value) {
    if (running >= AT_ONCE) return
    if (upload.state.value !== 'waiting') continue
    running++
    busy.value++
    upload.run().then(() => {
      running--
      busy.value--
      ended(upload)
      start()
    })
  }
}

function ended(upload) {
  const state = upload.state.value
  if (state !== 'done' && state !== 'skipped') return
  const { doneFiles, doneBytes, skipped } = totals.value
  totals.value = {
    ...totals.value,
    doneFiles: doneFiles + 1,
    doneBytes: doneBytes + upload.file.size,
    skipped: skipped + Number(state === 'skipped'),
  }
  uploads.value = uploads.value.filter((other) => other !== upload)
  for (const listener of listeners) listener(upload)
}

export function pauseAll() {
  for (const upload of uploads.value) if (upload.state.value !== 'failed') upload.pause()
}

/** Continues those that were paused, and tries those again that have failed. */
export function continueAll() {
  for (const upload of uploads.value)
    if (['paused', 'failed'].includes(upload.state.value)) upload.state.value = 'waiting'
  start()
}

export function continueOne(upload) {
  upload.state.value = 'waiting'
  start()
}

export async function cancelUpload(upload) {
  uploads.value = uploads.value.filter((other) => other !== upload)
  const { files, bytes } = totals.value
  totals.value = { ...totals.value, files: files - 1, bytes: bytes - upload.file.size }
  await upload.cancel()
}

export async function cancelAll() {
  await Promise.all(uploads.value.map(cancelUpload))
}

// A new session continues what the old one has begun.
effect(() => {
  if (session.value === null) for (const upload of uploads.peek()) upload.pause()
})

addEventListener('beforeunload', (event) => {
  if (uploads.value.some(({ state }) => ['waiting', 'running', 'retrying'].includes(state.value)))
    event.preventDefault()
})
