import { spawnSync } from 'node:child_process'

/** A command that cannot be run as it stands on its page. */
export interface Exception {
  readonly page: string
  /** The beginning of the command. */
  readonly command: string
  readonly reason: string
  /** What is run in its place: a shell command, with `$REPOSITORY` for this repository. Absent: nothing. */
  readonly instead?: string
}

/** `npm install` of this repository. npm makes the programs of a package executable. */
const INSTALL = `mkdir -p node_modules/.bin && ln -s "$REPOSITORY" node_modules/dealgate && printf '#!/bin/sh\nexec node "$REPOSITORY/dist/app/cli.js" "$@"\n' > node_modules/.bin/dealgate && chmod +x node_modules/.bin/dealgate`

/** `.ci/run` does not build it, because that takes minutes. */
const hasKopia = spawnSync('kopia', ['--version']).status === 0

export const exceptions: readonly Exception[] = [
  {
    page: 'README.md',
    command: 'npm install && npm start',
    reason: 'It installs packages from the registry, and writes into this repository.',
    instead: 'DEALGATE_DATA="$PWD/dealgate-data" npm --prefix "$REPOSITORY" start',
  },
  { page: 'README.md', command: 'npm install && npm test', reason: 'It would run this test within itself.' },
  {
    page: 'docs/install.md',
    command: 'npm install && node scripts/bundle.mjs && npm install --global .',
    reason: 'It installs packages from the registry, and writes beside npm.',
    instead:
      'export npm_config_prefix="$PWD/global" && (cd "$REPOSITORY" && npm install --global .) && (cd / && "$npm_config_prefix/bin/dealgate" --version)',
  },
  {
    page: 'docs/install.md',
    command: 'npm install --global ./dealgate-',
    reason: 'It installs packages from the registry: test/nodes/package.test.ts installs such a tarball.',
  },
  ...(hasKopia
    ? []
    : [
        {
          page: 'docs/guides/backups-that-stay.md',
          command: 'kopia ',
          reason: 'Kopia is not installed: test/clients/versions/kopia.test.ts has the same commands.',
        },
      ]),
  {
    page: 'docs/guides/write-a-plugin.md',
    command: 'npm install file:../dealgate',
    reason: 'It installs packages from the registry.',
    instead: `cd greet && ${INSTALL}`,
  },
  {
    page: 'docs/guides/write-a-plugin.md',
    command: 'npm install ../dealgate',
    reason: 'It installs packages from the registry.',
    instead: INSTALL,
  },
  {
    page: 'docs/guides/embed-in-express.md',
    command: 'npm install express',
    reason: 'It installs packages from the registry.',
    instead:
      'mkdir node_modules && ln -s "$REPOSITORY" node_modules/dealgate && ln -s "$REPOSITORY/node_modules/express" node_modules/express',
  },
  {
    page: 'docs/encryption.md',
    command: 'age -d -i safe.keys',
    reason: 'The file comes by the interface of the gateway: test/src/s3/object/encryption.test.ts opens such files.',
    instead:
      'age -e -i safe.keys -o letter.age letter.txt && age -d -i safe.keys -o opened.txt letter.age && cmp opened.txt letter.txt',
  },
  {
    page: 'docs/existing-gateways.md',
    command: 'MINIO_ROOT_USER=access',
    reason:
      'Another project brings the server along: startRealGateway starts it on one drive and on four, the page is tried against one.',
  },
  {
    page: 'docs/plugins.md',
    command: 'npm install --prefix',
    reason: 'It installs packages from the registry.',
    instead:
      'mkdir -p dealgate-plugin-greet/node_modules && ln -s "$REPOSITORY" dealgate-plugin-greet/node_modules/dealgate',
  },
  {
    page: 'docs/accounts.md',
    command: 'dealgate login',
    reason: 'It asks for a password: test/cli/login runs it with one on standard input.',
  },
  {
    page: 'docs/accounts.md',
    command: 'aws --profile dealgate',
    reason: 'It needs the profile that a login writes: test/cli/login runs it.',
  },
  {
    page: 'docs/sts.md',
    command: 'aws --endpoint-url http://127.0.0.1:9000 sts assume-role-with-web-identity',
    reason: 'It needs the JWT of a sign-in: test/src/s3/sts/sts-clients.test.ts runs it with one.',
  },
  {
    page: 'docs/payment.md',
    command: 'ipfs dag export',
    reason: 'Kubo is not among the client programs: test/services/payment/directories.test.ts makes such a CAR.',
  },
  {
    page: 'docs/payment.md',
    command: 'curl -s -H "Authorization: Bearer $TOKEN"',
    reason: 'It needs the token of a sign-in: test/services/payment/directories.test.ts uploads with one.',
  },
]
