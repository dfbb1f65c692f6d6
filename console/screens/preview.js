import { send } from '../lib/api.js'
import { formatBytes } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { shownAs } from '../lib/sniff.js'
import { Loaded, useLoaded } from '../parts/load.js'

/** Bytes that decide what an object is, and all of a text that is shown. */
const FIRST = 256 * 1024
/** Largest image, sound or film that is shown. */
const LARGEST = 32 * 1024 * 1024

/** Shows images, text, sounds and films, by what their bytes are: never a page that could run. */
export function Preview({ bucket, name, versionId, size }) {
  const [open, setOpen] = useState(false)
  return html`<h2>Preview</h2>
    ${size === 0 && html`<p class="quiet">The object is empty.</p>`}
    ${size > 0 && !open && html`<button type="button" onClick=${() => setOpen(true)}>Show a preview</button>`}
    ${open && html`<${Shown} bucket=${bucket} name=${name} versionId=${versionId} size=${size} />`}`
}

function Shown({ bucket, name, versionId, size }) {
  const client = session.value
  const read = async (last, signal) => {
    const headers = last < size ? { range: `bytes=0-${last - 1}` } : {}
    return new Uint8Array(await (await send(client, { bucket, key: name, versionId, headers, signal })).arrayBuffer())
  }
  const look = async (signal) => {
    const first = await read(FIRST, signal)
    const shown = shownAs(first, size <= FIRST)
    if (shown === undefined || shown.kind === 'text') return { ...shown, cut: size > FIRST }
    if (size > LARGEST) return { kind: 'large' }
    return { ...shown, bytes: size <= FIRST ? first : await read(size, signal) }
  }
  const preview = useLoaded(look, [client, bucket, name, versionId, size])
  return html`<${Loaded} of=${preview} show=${(shown) => html`<${Content} shown=${shown} />`} />`
}

function Content({ shown: { kind, type, bytes, text, cut } }) {
  if (kind === 'text')
    return html`${cut && html`<p class="quiet">The first ${formatBytes(FIRST)}:</p>`}
      <pre tabindex="0" role="region" aria-label="Content">${cut ? text : pretty(text)}</pre>`
  if (kind === 'large') return html`<p class="quiet">It is larger than ${formatBytes(LARGEST)}: download it.</p>`
  if (kind === undefined) return html`<p class="quiet">Objects of this kind are not shown: download it.</p>`
  return html`<${Media} kind=${kind} type=${type} bytes=${bytes} />`
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

function Media({ kind, type, bytes }) {
  const [url, setUrl] = useState()
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes])
  if (url === undefined) return undefined
  if (kind === 'image') return html`<img class="preview" src=${url} alt="The object" />`
  if (kind === 'audio') return html`<audio controls src=${url} />`
  return html`<video class="preview" controls src=${url} />`
}
