// Starts the console: signs in, then shows the screen that the address names.
import { html, render, signal, useEffect, useState } from './lib/html.js'
import { matchPath, route } from './lib/router.js'
import { readConfig, resume, session } from './lib/session.js'
import { Header, Side } from './parts/frame.js'
import { Problem } from './parts/load.js'
import { Notices } from './parts/notices.js'
import { Page } from './parts/page.js'
import { SignIn } from './screens/sign-in.js'
import { screens } from './screens.js'

/** After this time the configuration is asked for again, ms. */
const AGAIN_MS = 3000
const NOT_LOADED = {
  code: 'NotLoaded',
  message:
    'The server of the console did not send a file of this screen. It may be down, or may have been updated: then load the page again.',
}

/** Files of screens that were loaded. */
const loaded = new Map()

/** What shows uploads below the screens: it follows the first screen. */
const footer = signal()

/** What an OpenID Connect issuer has added to the address. Its code leaves the address before anything else is done. */
let added = location.search
if (added !== '') history.replaceState(null, '', `${location.pathname}${location.hash}`)

const app = document.getElementById('app')
const config = await untilRead()
await resume()
render(html`<${App} />`, app)

/** The configuration, once the server of the console sends it: it may be about to start behind a proxy. */
async function untilRead() {
  for (;;) {
    try {
      return await readConfig()
    } catch {
      render(html`<${NoAnswer} />`, app)
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}

function NoAnswer() {
  return html`<main id="main" class="narrow">
    <h1>dealgate</h1>
    <p class="problem" role="status">The server of the console does not answer. This page asks again every few seconds.</p>
  </main>`
}

function App() {
  return session.value === null ? html`<${SignIn} config=${config} takeReturn=${takeReturn} />` : html`<${Shell} />`
}

/** Gives it once: a code counts for one sign-in. */
function takeReturn() {
  const answer = new URLSearchParams(added)
  added = ''
  return answer.has('code') || answer.has('error') ? answer : undefined
}

function Shell() {
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Header} />
    <${Side} />
    <main id="main" tabindex="-1"><${Screen} /></main>
    ${footer.value && html`<${footer.value} />`}
    <${Notices} />`
}

function Screen() {
  const { path, query } = route.value
  if (path === '/') return html`<${View} key="/" of=${screens[0]} params=${{}} query=${query} />`
  for (const screen of screens) {
    const params = matchPath(screen.path, path)
    if (params) return html`<${View} key=${path} of=${screen} params=${params} query=${query} />`
  }
  return html`<${Page} title="No such screen"><p>This address belongs to no screen of the console.</p><//>`
}

/** A screen, once its file is there. A file that did not come is asked for again by a button. */
function View({ of: { file, view }, params, query }) {
  const [{ screen, failed }, setState] = useState({ screen: loaded.get(file) })
  const load = async () => {
    setState({})
    try {
      loaded.set(file, await import(`./screens/${file}.js`))
      setState({ screen: loaded.get(file) })
    } catch {
      setState({ failed: true })
    }
  }
  useEffect(() => void (screen ?? load().then(loadNext)), [])
  if (screen) return html`<${screen[view]} params=${params} query=${query} />`
  if (failed)
    return html`<${Page} title="This screen did not load"><${Problem} error=${NOT_LOADED} retry=${load} /><//>`
  return html`<p class="quiet" role="status">Loading…</p>`
}

/**
 * Once the browser has nothing else to do: the screen of objects, to which most people go on, and uploads with their
 * screen, which outlive a server that is away.
 */
function loadNext() {
  const later = globalThis.requestIdleCallback ?? setTimeout
  later(async () => {
    const parts = ['./uploads/footer.js', './screens/uploads.js', './screens/objects.js'].map((file) => import(file))
    const [{ Footer } = {}, uploads] = await Promise.all(parts).catch(() => [])
    footer.value = Footer
    if (uploads) loaded.set('uploads', uploads)
  })
}

/** The hash names the screen: the link must not change it. */
function skip(event) {
  event.preventDefault()
  document.getElementById('main').focus()
}
