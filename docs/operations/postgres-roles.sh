#!/bin/sh
# Run once by the image of PostgreSQL, when its volume is new: an owner for migrations, and a role for the application
# that may do nothing but what migrations grant it.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set owner_password `cat /run/secrets/database_owner_password`
\set app_password `cat /run/secrets/database_password`
CREATE ROLE touchstone_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE touchstone_app LOGIN PASSWORD :'app_password';
ALTER ROLE touchstone_app SET idle_in_transaction_session_timeout = '15min';
ALTER ROLE touchstone_app SET statement_timeout = '30min';
CREATE DATABASE touchstone OWNER touchstone_owner;
REVOKE ALL ON DATABASE touchstone FROM PUBLIC;
GRANT CONNECT, TEMPORARY ON DATABASE touchstone TO touchstone_app;
REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC;
SQL
