// What changes an object by a copy onto itself, which the server refuses if another write came since it was read.
import { copyOnto, keptClass, LABELS, unlessWritten } from '../../lib/copy.js'
import { html, useState } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { Dialog } from '../../parts/dialog.js'
import { Field, Form } from '../../parts/form.js'
import { Name } from '../../parts/name.js'
import { notify } from '../../parts/notices.js'
import { Pairs } from '../../parts/pairs.js'

const HEADERS = [
  ['content-type', 'Content type'],
  ['cache-control', 'Cache control'],
  ['content-disposition', 'Content disposition'],
  ['content-encoding', 'Content encoding'],
  ['content-language', 'Content language'],
  ['expires', 'Expires'],
  ['x-amz-website-redirect-location', 'Website redirect'],
]
/** Names of metadata that plugins report, and which no write sets. */
const REPORTED = /^(cid|deal-(cid|count|expiry|provider|status)|task-uuid)$/
/** https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i

const EFFECTS = {
  undefined: 'The object is copied onto itself: its time of modification becomes the present.',
  null: 'A copy becomes a new version; while versioning is suspended, it takes the place of this one, the version null.',
  id: 'A copy becomes a new version with the default lock of the bucket; the version that is current now stays as it is.',
}

/** What such a copy means for this object. */
function Effects({ facts }) {
  const isArchived = facts.storageClass !== 'STANDARD' && keptClass(facts.storageClass) === undefined
  return html`<p>
      ${EFFECTS[facts.versionId] ?? EFFECTS.id} Tags, rights and encryption are kept. It is refused if somebody else has written the object meanwhile.
    </p>
    ${isArchived && html`<p class="problem">The object is in the class <${Name} text=${facts.storageClass} />. The copy is not: it is stored on the gateway as STANDARD, and no deal holds it.</p>`}`
}

/** Changes headers and metadata. @param facts of HEAD */
export function EditMetadata({ place, facts, done, onClose }) {
  const [rows, setRows] = useState(() => facts.metadata.filter(([name]) => !REPORTED.test(name)))
  const action = async (values, signal) => {
    const headers = HEADERS.map(([name]) => [name, values.get(name).trim() || undefined])
    await copyOnto(
      session.value,
      { bucket: place.bucket, key: place.key },
      facts,
      {
        ...Object.fromEntries(headers),
        ...metadataHeaders(rows),
        ...unlessWritten(facts),
        'x-amz-metadata-directive': 'REPLACE',
      },
      signal,
    )
    notify(`The metadata of ${place.key} was saved.`)
    onClose()
    done()
  }
  return html`<${Dialog} title="Edit metadata" onClose=${onClose}>
    <${Form} action=${action} submit="Save metadata" onCancel=${onClose}>
      <${Effects} facts=${facts} />
      ${HEADERS.map(([name, label]) => html`<${Field} label=${label} input=${{ name, defaultValue: facts.headers.get(name) ?? '', autocomplete: 'off', spellcheck: false }} />`)}
      <h3>Metadata</h3>
      <${Pairs} rows=${rows} setRows=${setRows} word="entry" />
    <//>
  <//>`
}

/** Throws Error for what no header can be. */
function metadataHeaders(rows) {
  const headers = {}
  for (const [name, value] of rows) {
    const header = `x-amz-meta-${name.trim().toLowerCase()}`
    if (!TOKEN.test(name.trim()))
      throw new Error(`${name} is no name of metadata: it may have letters, digits and the signs !#$%&'*+-.^_\`|~.`)
    if (header in headers) throw new Error(`The metadata ${name} is there twice.`)
    headers[header] = value
  }
  return headers
}

/** Changes the class among those that only name a price. */
export function ChangeClass({ place, facts, done, onClose }) {
  const [chosen, setChosen] = useState(facts.storageClass)
  const action = async (_, signal) => {
    await copyOnto(
      session.value,
      { bucket: place.bucket, key: place.key },
      facts,
      { ...unlessWritten(facts), 'x-amz-metadata-directive': 'COPY', 'x-amz-storage-class': chosen },
      signal,
    )
    notify(`${place.key} has the storage class ${chosen}.`)
    onClose()
    done()
  }
  return html`<${Dialog} title="Change the storage class" onClose=${onClose}>
    <${Form} action=${action} submit="Change" disabled=${chosen === facts.storageClass} onCancel=${onClose}>
      <${Effects} facts=${facts} />
      <${Field} label="Storage class" kind="select" hint="These classes are stored alike, and are kept as labels. An archive class is a paid deal: choose “Make a deal”, which shows its price first." input=${{ name: 'class', value: chosen, onChange: (event) => setChosen(event.target.value) }}>
        ${[...new Set([facts.storageClass, 'STANDARD', ...LABELS])].map((name) => html`<option value=${name} selected=${name === chosen}>${name}</option>`)}
      <//>
    <//>
  <//>`
}
