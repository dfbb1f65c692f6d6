import { html, useEffect } from '../lib/html.js'
import { goTo } from '../lib/router.js'
import { selection } from '../lib/selection.js'

/** Takes selected rows to the screen where a batch job is ordered for them. */
export function BatchObjects({ bucket, items, onClose }) {
  useEffect(() => {
    selection.value = { bucket, items }
    onClose()
    goTo(['batch', 'new'], { bucket, selected: 'yes' })
  }, [])
  return html``
}
