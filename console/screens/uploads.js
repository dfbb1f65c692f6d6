import { send } from '../lib/api.js'
import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, useRef, useState } from '../lib/html.js'
import { linkTo } from '../lib/router.js'
import { session } from '../lib/session.js'
import { Confirm } from '../parts/dialog.js'
import { Empty } from '../parts/empty.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { Name } from '../parts/name.js'
import { notify } from '../parts/notices.js'
import { Page } from '../parts/page.js'
import { Table } from '../parts/table.js'
import { Buttons, Summary } from '../uploads/footer.js'
import { forgetUpload, keptUploads } from '../uploads/kept.js'
import { addUploads, cancelAll, cancelUpload, continueOne, uploads } from '../uploads/queue.js'
import { Upload } from '../uploads/upload.js'

/** Rows that are shown: of thousands of files, those that are next. */
const SHOWN = 100
const STATES = {
  waiting: 'waits',
  running: 'is sent',
  retrying: 'no answer, tries again',
  paused: 'paused',
  failed: 'failed',
}

export function Uploads() {
  const all = uploads.value
  return html`<${Page} title="Uploads">
    ${all.length === 0 ? html`<${Empty} title="There is nothing to upload." actions=${html`<a class="button" href=${linkTo(['buckets'])}>Open a bucket</a>`}>Drop files and folders on the page of a bucket or folder.<//>` : html`<${Queue} all=${all} />`}
    <${Interrupted} />
  <//>`
}

function Queue({ all }) {
  const [asks, setAsks] = useState(false)
  const urgent = [...all].sort((one, other) => rank(one) - rank(other)).slice(0, SHOWN)
  return html`<${Summary} />
    <${Buttons} onCancel=${() => setAsks(true)} />
    ${all.length > SHOWN && html`<p class="quiet">The first ${SHOWN} of ${all.length} files:</p>`}
    <${Table} caption="Files to upload" columns=${COLUMNS} rows=${urgent} keyOf=${({ bucket, key }) => `${bucket}/${key}`} />
    ${
      asks &&
      html`<${Confirm} title="Cancel all uploads" submit="Cancel uploads" action=${cancelAll} onClose=${() => setAsks(false)}>
        <p>${formatCount(all.length, 'file')} will not be uploaded. Files that are uploaded already stay.</p>
      <//>`
    }`
}

function rank({ state }) {
  return ['failed', 'retrying', 'running'].indexOf(state.value) + 1 || 4
}

const COLUMNS = [
  { name: 'File', cell: ({ bucket, key }) => html`<${Name} text=${`${bucket}/${key}`} />` },
  { name: 'Size', number: true, cell: ({ file }) => formatBytes(file.size) },
  { name: 'State', cell: (upload) => html`<${State} upload=${upload} />` },
  { name: 'Actions', cell: (upload) => html`<${Actions} upload=${upload} />` },
]

function State({ upload: { file, state, sent, error } }) {
  const percent = file.size === 0 ? 100 : Math.floor((100 * sent.value) / file.size)
  return html`${STATES[state.value]}${state.value === 'waiting' ? '' : `, ${percent} %`}
    ${error.value && html`<br /><${Name} text=${error.value.message} />`}`
}

function Actions({ upload }) {
  const name = visibleText(upload.key)
  const state = upload.state.value
  const idle = state === 'paused' || state === 'failed'
  return html`<div class="buttons">
    <button type="button" aria-label=${`${idle ? 'Continue' : 'Pause'} ${name}`} onClick=${() => (idle ? continueOne(upload) : upload.pause())}>
      ${idle ? 'Continue' : 'Pause'}
    </button>
    <button type="button" aria-label=${`Cancel ${name}`} onClick=${() => cancelUpload(upload)}>Cancel</button>
  </div>`
}

/** Uploads in parts that ended with an earlier page: the file has to be chosen again, because no page may open it itself. */
function Interrupted() {
  const { endpoint } = session.value
  const kept = useLoaded(() => keptUploads(endpoint), [endpoint, uploads.value.length])
  const active = new Set(uploads.value.map((upload) => upload.kept?.uploadId))
  return html`<${Loaded}
    of=${kept}
    show=${(all) => {
      const rows = all.filter(({ uploadId }) => !active.has(uploadId))
      if (rows.length === 0) return undefined
      return html`<h2>Interrupted uploads</h2>
        <p>Choose the same file again: what the server has already is not sent again.</p>
        <${Table} caption="Interrupted uploads" columns=${interruptedColumns(kept.reload)} rows=${rows} keyOf=${({ uploadId }) => uploadId} />`
    }}
  />`
}

function interruptedColumns(reload) {
  return [
    { name: 'Object', cell: ({ bucket, key }) => html`<${Name} text=${`${bucket}/${key}`} />` },
    { name: 'Size', number: true, cell: ({ size }) => formatBytes(size) },
    { name: 'Actions', cell: (kept) => html`<${Again} kept=${kept} reload=${reload} />` },
  ]
}

function Again({ kept, reload }) {
  const { bucket, key, uploadId } = kept
  const input = useRef(null)
  const chosen = () => {
    const [file] = input.current.files
    if (!file) return
    if (file.size !== kept.size || file.lastModified !== kept.lastModified)
      return notify(`This is another file, or it has changed: the upload is of ${kept.size} bytes.`, 'failed')
    addUploads([new Upload({ file, bucket, key, kept })])
  }
  const cancel = async () => {
    await send(session.value, { method: 'DELETE', bucket, key, query: { uploadId } }).catch(() => {})
    await forgetUpload(uploadId)
    reload()
  }
  return html`<input type="file" hidden ref=${input} onChange=${chosen} />
    <div class="buttons">
      <button type="button" onClick=${() => input.current.click()} aria-label=${`Choose file of ${visibleText(key)}`}>Choose file</button>
      <button type="button" onClick=${cancel} aria-label=${`Cancel the upload of ${visibleText(key)}`}>Cancel</button>
    </div>`
}
