// `npm run sbom`: writes `dist/sbom.cdx.json`, a CycloneDX list of all packages that dealgate is installed with or that
// the console contains, and fails if one of them has no licence or one that this project does not accept.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
/**
 * Licences, by SPDX identifier, whose only conditions are notices:
 * https://www.apache.org/legal/resolved.html#category-a
 */
const ACCEPTED = /^(0BSD|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|BlueOak-1\.0\.0|ISC|MIT|MIT-0)$/

/** Packages in the file `vendor.js` of the console, which `scripts/bundle.mjs` makes. They need no installation. */
const CONSOLE = ['preact', 'htm', '@preact/signals']

const npm = spawnSync('npm sbom --package-lock-only --sbom-format=cyclonedx', {
  cwd: root,
  encoding: 'utf8',
  shell: true,
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 64 * 2 ** 20,
})
if (npm.status !== 0) process.exit(npm.status ?? 1)
const document = JSON.parse(npm.stdout)
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
const { name, version, license } = packages['']
/** Packages of an installation and of the console, as `name@version`. */
const installed = new Set(
  Object.entries(packages).flatMap(([place, entry]) => {
    const [, name] = /^node_modules\/(?:.*\/node_modules\/)?(.*)$/.exec(place) ?? []
    return name === undefined || entry.dev || entry.devOptional || entry.link ? [] : `${name}@${entry.version}`
  }),
)
for (const name of CONSOLE) include(name)
const rootRef = document.metadata.component['bom-ref']
// npm names the root after its folder.
Object.assign(document.metadata.component, { name, version, licenses: [{ license: { id: license } }] })
// Not `--omit=dev`: it also omits what both the server and the tests depend on.
document.components = document.components.filter((component) => installed.has(component['bom-ref']))
document.dependencies = document.dependencies.filter(({ ref }) => ref === rootRef || installed.has(ref))
for (const entry of document.dependencies) entry.dependsOn = entry.dependsOn.filter((ref) => installed.has(ref))
const refused = document.components.filter((component) => {
  component.licenses ??= oldLicences(component)
  return !(component.licenses ?? []).some(accepted)
})
for (const { name, version, licenses } of refused)
  process.stderr.write(`${name} ${version}: the licence ${JSON.stringify(licenses ?? null)} is not accepted\n`)
if (refused.length > 0) process.exit(1)
mkdirSync(join(root, 'dist'), { recursive: true })
writeFileSync(join(root, 'dist/sbom.cdx.json'), `${JSON.stringify(document, null, 1)}\n`)
process.stdout.write(`${document.components.length} packages, all under accepted licences: dist/sbom.cdx.json\n`)

/** Adds a package of the console and what it depends on. What it expects beside it is another of them. */
function include(name) {
  const { version, dependencies = {} } = packages[`node_modules/${name}`]
  installed.add(`${name}@${version}`)
  for (const inner of Object.keys(dependencies)) include(inner)
}

/** The field `licenses`, an array, of packages from before SPDX expressions; npm does not read it. */
function oldLicences({ name }) {
  const { licenses } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'))
  return licenses?.map(({ type }) => ({ license: { id: type } }))
}

/** An expression is accepted if one of its alternatives is; a combination by AND is not in use. */
function accepted({ license, expression }) {
  const text = license?.id ?? license?.name ?? expression ?? ''
  return text
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((one) => ACCEPTED.test(one))
}
