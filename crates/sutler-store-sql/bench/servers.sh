# For the scripts beside it: builds the program, and starts a server of its own with all durability on,
# on a free port, with throw-away data. Sets `program`, `url`, `data` and `client`, which takes SQL.
profile=${PROFILE:-bench}
cd "$here/../../.."
cargo build -q --profile "$profile" -p sutler-store-sql --all-features --example sql_store_bench
case $profile in dev) folder=debug ;; bench) folder=release ;; *) folder=$profile ;; esac
program=${CARGO_TARGET_DIR:-target}/$folder/examples/sql_store_bench
data=$(mktemp -d)
chmod 755 "$data"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# Runs a command as the server's user where this is root.
as() {
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then su "$user" -s /bin/sh -c "$*"; else sh -c "$*"; fi
}
own() { if [ "$(id -u)" = 0 ]; then chown "$1" "$data"; fi; }

start_postgres() {
    local bin
    bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/postgres | tail -n1)")
    own postgres
    trap "as postgres '$bin/pg_ctl -s -D $data/data -m immediate stop' || true; rm -rf '$data'" EXIT
    as postgres "$bin/initdb -D $data/data -A trust -U postgres -E UTF8 --locale=C.UTF-8 >/dev/null"
    as postgres "$bin/pg_ctl -s -w -D $data/data -l $data/log -o '-p $port -k $data -c listen_addresses=127.0.0.1' start"
    url="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
    client() { psql -q -v ON_ERROR_STOP=1 "$@" "$url"; }
}

start_mysql() {
    own mysql
    as mysql "mariadb-install-db --no-defaults --datadir=$data/data --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve >/dev/null"
    as mysql "mkdir $data/tmp"
    as mysql "exec mariadbd --no-defaults --datadir=$data/data --tmpdir=$data/tmp --port=$port --bind-address=127.0.0.1 --socket=$data/s --pid-file=$data/pid --skip-name-resolve --innodb-buffer-pool-size=256M --innodb-print-all-deadlocks --log-warnings=2 >$data/log 2>&1" &
    trap "kill \$(cat '$data/pid') && wait; rm -rf '$data'" EXIT
    until mariadb --no-defaults -uroot -S "$data/s" -e 'CREATE DATABASE sutler' 2>/dev/null; do sleep 0.1; done
    url="mysql://root@127.0.0.1:$port/sutler?ssl-mode=disabled"
    client() { mariadb --no-defaults -uroot -S "$data/s" sutler "$@"; }
}
