// The screen that the hash of the address names: `#/buckets/photos/objects?prefix=2026/`.
import { signal } from './html.js'

/** { path, query }: the part before `?` with its slashes, and the pairs after it. */
export const route = signal(readHash())

addEventListener('hashchange', () => {
  route.value = readHash()
})

function readHash() {
  const [path = '', query = ''] = location.hash.slice(1).split('?', 2)
  return { path: path || '/', query: new URLSearchParams(query) }
}

/** The address of a screen. @param segments are encoded; @param query undefined values are left out */
export function linkTo(segments, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ''
  return `#/${segments.map(encodeURIComponent).join('/')}${search}`
}

export function goTo(segments, query) {
  location.hash = linkTo(segments, query)
}

/** Values of the `:name` segments of a pattern; undefined if the path is another one. */
export function matchPath(pattern, path) {
  const names = pattern.split('/')
  const words = path.split('/')
  if (names.length !== words.length) return undefined
  const params = {}
  for (const [i, name] of names.entries()) {
    if (name.startsWith(':')) {
      const value = decoded(words[i])
      if (!value) return undefined
      params[name.slice(1)] = value
    } else if (name !== words[i]) return undefined
  }
  return params
}

function decoded(word) {
  try {
    return decodeURIComponent(word)
  } catch {
    return undefined
  }
}
