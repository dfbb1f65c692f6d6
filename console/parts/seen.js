import { html, useEffect, useRef, useState } from '../lib/html.js'

/** What is called when an element comes into view. */
const waiting = new WeakMap()
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) waiting.get(target)?.()
})

/** Makes its children once they are in view: what they read is then read for the rows that somebody looks at. */
export function WhenSeen({ children }) {
  const ref = useRef(null)
  const [seen, setSeen] = useState(false)
  useEffect(() => {
    const { current } = ref
    if (seen) return
    waiting.set(current, () => setSeen(true))
    observer.observe(current)
    return () => observer.unobserve(current)
  }, [seen])
  return seen ? children : html`<span ref=${ref} class="quiet">…</span>`
}
