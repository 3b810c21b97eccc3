import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


# The audit trail is append-only for every role: no row of it can be changed or deleted, not even by a cascade.
# ALWAYS: under session_replication_role = replica too, which skips ordinary triggers.
APPEND_ONLY_SQL = """
CREATE FUNCTION accounts_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit events are append-only' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON accounts_auditevent
    FOR EACH ROW EXECUTE FUNCTION accounts_audit_append_only();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON accounts_auditseal
    FOR EACH ROW EXECUTE FUNCTION accounts_audit_append_only();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON accounts_auditevent
    EXECUTE FUNCTION accounts_audit_append_only();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON accounts_auditseal
    EXECUTE FUNCTION accounts_audit_append_only();
ALTER TABLE accounts_auditevent ENABLE ALWAYS TRIGGER audit_append_only;
ALTER TABLE accounts_auditevent ENABLE ALWAYS TRIGGER audit_no_truncate;
ALTER TABLE accounts_auditseal ENABLE ALWAYS TRIGGER audit_append_only;
ALTER TABLE accounts_auditseal ENABLE ALWAYS TRIGGER audit_no_truncate;
"""
APPEND_ONLY_SQL_BACK = """
DROP TRIGGER audit_append_only ON accounts_auditseal;
DROP TRIGGER audit_no_truncate ON accounts_auditseal;
DROP TRIGGER audit_no_truncate ON accounts_auditevent;
DROP TRIGGER audit_append_only ON accounts_auditevent;
DROP FUNCTION accounts_audit_append_only();
"""


class Migration(migrations.Migration):

    replaces = [('accounts', '0005_sign_in'), ('accounts', '0006_audit_chain'), ('accounts', '0007_scim')]

    dependencies = [
        ('accounts', '0001_squashed_0004_key_owners'),
        ('sessions', '0001_initial'),
        ('socialaccount', '0006_alter_socialaccount_extra_data'),
    ]

    operations = [
        migrations.CreateModel(
            name='GuessCounter',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('updated_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ('blocked_until', models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name='project',
            name='require_single_sign_on',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='project',
            name='require_two_factor',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='user',
            name='email_verified_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='must_change_password',
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name='AccountLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('purpose', models.CharField(choices=[('password', 'Password'), ('registration', 'Registration'), ('verify', 'Verify'), ('login', 'Login')], max_length=12)),
                ('email', models.EmailField(max_length=254)),
                ('is_mailed', models.BooleanField(default=False)),
                ('hash', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('send_at', models.DateTimeField(db_index=True, null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('invitation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.invitation')),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.project')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='account_links', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['email', 'purpose'], name='account_link_email')],
            },
        ),
        migrations.CreateModel(
            name='UserSession',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('began_at', models.DateTimeField(null=True)),
                ('seen_at', models.DateTimeField(null=True)),
                ('address', models.GenericIPAddressField(null=True)),
                ('agent', models.CharField(blank=True, max_length=300)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'abstract': False,
                'indexes': [models.Index(fields=['user', 'address'], name='user_session_address')],
            },
        ),
        migrations.CreateModel(
            name='AuditAlias',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pseudonym', models.CharField(max_length=40, unique=True)),
                ('kind', models.CharField(choices=[('person', 'Person'), ('network', 'Network')], max_length=10)),
                ('value', models.CharField(max_length=254)),
                ('belongs_to', models.CharField(blank=True, max_length=40)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='AuditSeal',
            fields=[
                ('sequence', models.BigIntegerField(primary_key=True, serialize=False)),
                ('previous_hash', models.CharField(max_length=64)),
                ('project_number', models.BigIntegerField()),
                ('project_sequence', models.BigIntegerField()),
                ('project_previous_hash', models.CharField(max_length=64)),
                ('hash', models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name='KeyAddress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('network', models.CharField(max_length=50)),
                ('first_used_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField(
            model_name='auditevent',
            name='project_slug',
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(fields=['project', 'actor', '-at'], name='audit_by_actor'),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(fields=['project', 'verb', '-at'], name='audit_by_verb'),
        ),
        migrations.AddIndex(
            model_name='auditalias',
            index=models.Index(fields=['belongs_to'], name='alias_of_person'),
        ),
        migrations.AddConstraint(
            model_name='auditalias',
            constraint=models.UniqueConstraint(fields=('kind', 'value', 'belongs_to'), name='alias_once'),
        ),
        migrations.AddField(
            model_name='auditseal',
            name='event',
            field=models.OneToOneField(on_delete=django.db.models.deletion.DO_NOTHING, related_name='seal', to='accounts.auditevent'),
        ),
        migrations.AddField(
            model_name='keyaddress',
            name='api_key',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='addresses', to='accounts.apikey'),
        ),
        migrations.AddConstraint(
            model_name='auditseal',
            constraint=models.UniqueConstraint(fields=('project_number', 'project_sequence'), name='seal_project_sequence'),
        ),
        migrations.AddConstraint(
            model_name='keyaddress',
            constraint=models.UniqueConstraint(fields=('api_key', 'network'), name='key_address_once'),
        ),
        migrations.CreateModel(
            name='ScimIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_name', models.CharField(max_length=254)),
                ('external_id', models.CharField(blank=True, max_length=254)),
                ('removed_at', models.DateTimeField(null=True)),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='scim', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('user_name'), name='scim_user_name_once')],
            },
        ),
        migrations.RunSQL(APPEND_ONLY_SQL, APPEND_ONLY_SQL_BACK),
    ]
