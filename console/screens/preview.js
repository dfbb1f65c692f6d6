import { send } from '../lib/api.js'
import { bytesOf } from '../lib/bytes.js'
import { formatBytes } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { pixelsOf } from '../lib/image-size.js'
import { follow, objectLink, secondsLeft } from '../lib/links.js'
import { isAtHand } from '../lib/s3.js'
import { session } from '../lib/session.js'
import { shownAs } from '../lib/sniff.js'
import { Loaded, useLoaded } from '../parts/load.js'
import { notifyError } from '../parts/notices.js'
import { TextPreview } from './preview-text.js'

/** Bytes that decide what an object is, and all of a text that is shown. */
const FIRST = 256 * 1024
/** Largest image that is shown, bytes, and most pixels of it. */
const LARGEST = 32 * 1024 * 1024
const MOST_PIXELS = 100_000_000
/** A link to a PDF needs to be valid until the browser has opened it, seconds. */
const LINK_SECONDS = 300

/**
 * Shows images, texts, tables, sounds and films, by what their bytes are: never a page that could run.
 * @param versionId one of the versions, in place of the current one
 */
export function Preview({ bucket, name, versionId, size }) {
  const client = session.value
  const place = { bucket, key: name, versionId }
  const preview = useLoaded((signal) => look(client, place, size, signal), [client, bucket, name, versionId, size])
  return html`<section aria-label="Preview">
    <h2>Preview</h2>
    ${size === 0 ? html`<p class="quiet">The object is empty.</p>` : html`<${Loaded} of=${preview} show=${(shown) => html`<${Content} shown=${shown} place=${place} />`} />`}
  </section>`
}

/** What an object shows. One that is in an archive is not read: that could begin a restore, which may cost. */
async function look(client, { bucket, key, versionId }, size, signal) {
  if (size === 0) return { kind: 'empty' }
  const query = { versionId }
  const { headers } = await send(client, { method: 'HEAD', bucket, key, query, signal })
  const isRestored = /ongoing-request="false"/.test(headers.get('x-amz-restore') ?? '')
  if (!isRestored && !isAtHand(headers.get('x-amz-storage-class') ?? 'STANDARD')) return { kind: 'archived' }
  const read = async (last, most) => {
    const range = last < size ? { range: `bytes=0-${last - 1}` } : {}
    return bytesOf(await send(client, { bucket, key, query, headers: range, signal }), most)
  }
  const found = await read(FIRST, FIRST + 1)
  const first = found.subarray(0, FIRST)
  // What is encoded has more bytes than the object.
  const cut = size > FIRST || found.length > FIRST
  const shown = shownAs(first, !cut) ?? {}
  if (shown.kind !== 'image') return { ...shown, cut }
  if (size > LARGEST || pixelsOf(first, shown.type) > MOST_PIXELS) return { kind: 'large' }
  return { ...shown, bytes: cut ? await read(size, LARGEST) : first }
}

const SAYS = {
  archived: 'The bytes are in an archive: restore the object to see it.',
  empty: 'The object is empty.',
  large: `It is larger than ${formatBytes(LARGEST)}, or has more than 100 million pixels: download it.`,
  other: 'Objects of this kind are not shown: download it.',
}

function Content({ shown, place }) {
  const { kind = 'other', text, cut } = shown
  if (kind === 'text') return html`<${TextPreview} name=${place.key} text=${text} cut=${cut && FIRST} />`
  if (kind === 'image') return html`<${Image} ...${shown} />`
  if (kind === 'pdf') return html`<${Pdf} place=${place} />`
  if (kind === 'audio' || kind === 'video') return html`<${Media} ...${shown} place=${place} />`
  return html`<p class="quiet">${SAYS[kind]}</p>`
}

function Image({ type, bytes }) {
  const [url, setUrl] = useState()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes])
  return url && html`<img class="preview" src=${url} alt="The object" />`
}

/** A sound or film of any size: the browser reads what it plays, by a link that ends with the session. */
function Media({ kind, type, place }) {
  const client = session.value
  const how = { inline: true, type }
  const link = useLoaded(
    async () => objectLink(client, place, { ...how, seconds: secondsLeft(client) }),
    [client, place.bucket, place.key, place.versionId],
  )
  const show = (url) =>
    kind === 'audio'
      ? html`<audio controls preload="metadata" src=${url} />`
      : html`<video class="preview" controls preload="metadata" src=${url} />`
  return html`<${Loaded} of=${link} show=${show} />`
}

/**
 * A PDF needs a tab of its own: browsers show none in a frame with a sandbox, and in a frame without one a link in it
 * would take this page away.
 */
function Pdf({ place }) {
  const open = async () => {
    try {
      follow(await objectLink(session.value, place, { seconds: LINK_SECONDS, inline: true, type: 'application/pdf' }))
    } catch (error) {
      notifyError(error)
    }
  }
  return html`<p class="quiet">The browser shows a PDF in a tab of its own, where it cannot reach this page.</p>
    <button type="button" onClick=${open}>Open the PDF</button>`
}
