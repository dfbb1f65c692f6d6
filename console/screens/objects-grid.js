import { visibleText } from '../lib/format.js'
import { html, useEffect, useRef, useState } from '../lib/html.js'
import { session } from '../lib/session.js'
import { drawThumbnail, hasThumbnail } from '../lib/thumbnails.js'
import { Icon } from '../parts/icon.js'
import { Menu } from '../parts/menu.js'
import { Name } from '../parts/name.js'
import { Bytes } from '../parts/time.js'

/** How far from the window a tile has its thumbnail already, and still. */
const NEAR = '300px'

/**
 * The rows of a page of objects as tiles, with small pictures of images. The keys go through a tile as through a row.
 * @param rows, keyOf, selection and menu as for `Table`; @param linkOf makes the address of a row
 */
export function ObjectsGrid({ bucket, rows, keyOf, selection: { keys, change, label }, menu, linkOf, empty }) {
  if (rows.length === 0) return empty
  const toggle = (key) => {
    const next = new Set(keys)
    if (!next.delete(key)) next.add(key)
    change(next)
  }
  const all = rows.every((row) => keys.has(keyOf(row)))
  return html`<label class="inline"><input type="checkbox" checked=${all} onChange=${() => change(new Set(all ? [] : rows.map(keyOf)))} /> Select all of this page</label>
    <ul class="tiles" aria-label="Objects and folders">
      ${rows.map((row) => {
        const key = keyOf(row)
        return html`<li key=${key} class=${keys.has(key) ? 'chosen' : undefined}>
          <div class="corner">
            <label class="target"><input type="checkbox" aria-label=${`Select ${label(row)}`} checked=${keys.has(key)} onChange=${() => toggle(key)} /></label>
            <${Menu} label=${menu.label(row)} items=${() => menu.items(row)} />
          </div>
          <a href=${linkOf(bucket, row)} title=${visibleText(row.label)}>
            <${Thumbnail} bucket=${bucket} row=${row} />
            <span class="label"><${Name} text=${row.label} /></span>
          </a>
          <p class="quiet">${row.folder ? 'Folder' : html`<${Bytes} of=${row.size} />`}${!row.folder && row.storageClass !== 'STANDARD' ? ` · ${row.storageClass}` : ''}</p>
        </li>`
      })}
    </ul>`
}

/** A picture while the tile is near the window, which goes when it leaves; the sign of a file where there is none. */
function Thumbnail({ bucket, row }) {
  const ref = useRef(null)
  const [state, setState] = useState('none')
  const client = session.value
  const wanted = hasThumbnail(row)
  useEffect(() => {
    if (!wanted) return undefined
    let abort
    const seen = ([entry]) => {
      abort?.abort()
      setState('none')
      const canvas = ref.current?.querySelector('canvas')
      // A canvas without pixels holds no memory.
      if (canvas) canvas.width = canvas.height = 0
      if (!entry.isIntersecting || !canvas) return
      abort = new AbortController()
      const { signal } = abort
      drawThumbnail(client, { bucket, key: row.name }, canvas, signal).then(
        (drawn) => signal.aborted || setState(drawn ? 'drawn' : 'none'),
        // An image that cannot be read or decoded has its sign; its screen says why.
        () => {},
      )
    }
    const observer = new IntersectionObserver(seen, { rootMargin: NEAR })
    observer.observe(ref.current)
    return () => {
      observer.disconnect()
      abort?.abort()
    }
  }, [client, bucket, row.name, row.etag, wanted])
  return html`<span class=${`thumb ${state}`} ref=${ref} aria-hidden="true">
    ${wanted && html`<canvas />`}
    <${Icon} of=${row.folder ? 'folder' : 'file'} />
  </span>`
}
