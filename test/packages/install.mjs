// Installs what building, checking and testing need besides the dependencies of dealgate. `.npmrc` keeps npm from
// installing it with `npm install`: it is four times as large as all that the server needs.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const missing = missingPackages()
if (missing.length > 0) {
  process.stderr.write(`Installing ${missing.length} packages for building and testing, and their dependencies.\n`)
  const flags = ['--workspaces', '--include-workspace-root', '--ignore-scripts', '--no-save', '--no-audit', '--no-fund']
  // A shell, because npm is a .cmd file on Windows; no argument contains a space.
  const npm = spawnSync(['npm', 'install', ...flags].join(' '), { cwd: root, stdio: 'inherit', shell: true })
  if (npm.status !== 0) {
    process.stderr.write('npm could not install the packages of test/packages/package.json: see its message above.\n')
    process.exit(npm.status ?? 1)
  }
}

/** Packages of `package.json` beside this file that `node_modules` does not contain in the locked version. */
function missingPackages() {
  const { packages } = readJson('package-lock.json')
  const { devDependencies } = readJson('test/packages/package.json')
  return Object.keys(devDependencies).filter((name) => {
    const place = `node_modules/${name}`
    return installedVersion(place) !== packages[place]?.version
  })
}

function installedVersion(place) {
  try {
    return readJson(`${place}/package.json`).version
  } catch {
    return 'not installed'
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}
