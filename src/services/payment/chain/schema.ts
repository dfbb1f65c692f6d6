/**
 * The chain on which payments are made: which one, the first block that counts, and the last one
 * that was read. `chain_blocks` has the hashes of
 * blocks at which reading stopped, by which a reorganisation is noticed. `chain_logs` has the logs of the contract
 * about uploads, what became of each (`counted`, or why it does not count), and what is needed to take it back:
 * the status that its upload had. Amounts are decimal texts, in the smallest units of the token; times are Unix
 * seconds.
 */
export const chainSchema = `
  CREATE TABLE chain (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    chain_id INTEGER NOT NULL,
    contract TEXT NOT NULL,
    token TEXT NOT NULL,
    token_name TEXT,
    first_block INTEGER,
    last_block INTEGER
  ) STRICT;
  CREATE TABLE chain_blocks (
    number INTEGER PRIMARY KEY,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE TABLE chain_logs (
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    block_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    w_cid TEXT NOT NULL,
    amount TEXT NOT NULL,
    time INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    former_status TEXT,
    PRIMARY KEY (block, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX chain_logs_of_upload ON chain_logs (w_cid, block, position);
`
