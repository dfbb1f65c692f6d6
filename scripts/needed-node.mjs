// Old versions of Node.js read this file before any other: it has syntax and imports of Node.js 14 alone.
import { readFileSync } from 'node:fs'

/**
 * Ends the process with one line and exit code 1 if this Node.js is older than the package needs.
 * @param packageFile URL of its package.json, whose `engines.node` has the form `>=20.18.1`
 */
export function refuseOldNode(packageFile) {
  const needed = JSON.parse(readFileSync(packageFile, 'utf8')).engines.node.replace('>=', '')
  if (!isOlder(process.version.replace('v', ''), needed)) return
  process.stderr.write(
    `dealgate needs Node.js ${needed} or newer, and this is Node.js ${process.version.replace('v', '')}: https://nodejs.org/en/download\n`,
  )
  process.exit(1)
}

function isOlder(version, than) {
  const wanted = than.split('.')
  const parts = version.split('.')
  for (let i = 0; i < wanted.length; i++) {
    const difference = parseInt(parts[i], 10) - parseInt(wanted[i], 10)
    if (difference !== 0) return difference < 0
  }
  return false
}
