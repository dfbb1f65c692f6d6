import type { OptionName } from './config/config.js'
import { type CommandDeclaration, named } from './declaration.js'

const STATE: readonly OptionName[] = ['data', 'state', 'stateTimeoutMs', 'auditLog', 'logLevel']

export const stateCommands: readonly CommandDeclaration[] = [
  {
    name: 'state accept',
    help: 'accept a state store that is empty or has been replaced: its former records are lost',
    options: STATE,
    inData: [],
    changes: () => true,
    run: async () => (await import('./state-commands.js')).acceptState,
  },
  {
    name: 'state copy',
    help: 'copy the tables of the embedded services, which are stopped, from a data folder to PostgreSQL or back; or move the bodies of objects from a data folder to an S3 store or back',
    options: ['database', 'bodiesCredentialsFile', 'auditLog', 'print', 'logLevel'],
    flags: [
      [
        '--from <place>',
        'a data folder, postgres://user@host/database, or s3://bucket/prefix?endpoint=https://host; - for the next line of standard input',
      ],
      ['--to <place>', 'likewise; for tables empty, or filled by a copy that was interrupted and goes on'],
    ],
    after:
      'Tables: the password of the database comes from PGPASSFILE or PGPASSWORD, unless the URL contains it. The source stays as it is, and all rows are compared at the end. Bodies: one place is the data folder, whose tables may be in --database; each body is read again at its new place, and its row then names it there. The services remove files that no row names later.',
    changes: () => true,
    run: async () => (await import('./state-commands.js')).copyState,
  },
  {
    name: 'state verify',
    help: 'read all bodies of the embedded gateway, which may run, and list those that are lost or damaged; bodies of an earlier version get checksums, and those that a store knows otherwise by now get its mark',
    options: named(/^(data|database|bodies\w*|auditLog|print|logLevel)$/),
    inData: ['database'],
    after:
      'Exit code 1 if a body is lost or damaged. `dealgate doctor --verify` lists the same and changes nothing. Where a deal has the object, RetrieveObject with Repair replaces the damaged body by that of the deal.',
    changes: () => true,
    run: async () => (await import('./verify-command.js')).verifyState,
  },
]
